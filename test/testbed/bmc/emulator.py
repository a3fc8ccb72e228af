"""The Redfish emulator of sushy-tools with its fake systems, made deterministic and watched.

Run as `python emulator.py CONFIG.json`. The power of each system is kept here in place of the fake driver: a change comes after the
delay that was set, the last command wins, and a journal gets one JSON line per power action that was answered and one per change of the
true power. Beside Redfish it serves, to the test bed only, `PUT /testbed/hosts/<uuid>` (delays, faults, a hand on the power switch) and
`GET /testbed/events` (each change of power, as JSON lines).
"""
import json
import os
import queue
import sys
import threading
import time

import bcrypt
import flask
from sushy_tools import error
from sushy_tools.emulator import main
from sushy_tools.emulator.resources.systems import fakedriver

EVENTS_ALIVE_SECONDS = 1


class Host:
    """True power of one host, and how it follows commands."""

    def __init__(self, name, power):
        self.name = name
        self.power = power
        self.settings = {"offMs": 0, "onMs": 0, "neverOff": False, "neverOn": False}
        self.pending = None

    def delay(self, power):
        return self.settings["offMs" if power == "Off" else "onMs"] / 1000

    def stuck(self, power):
        return self.settings["neverOff" if power == "Off" else "neverOn"]


class World:
    def __init__(self, systems, journal_path):
        self.lock = threading.RLock()
        self.hosts = {system["uuid"]: Host(system["name"], system["power_state"]) for system in systems}
        self.journal = os.open(journal_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.listeners = []

    def write(self, entry):
        line = json.dumps({"at": int(time.time() * 1000), **entry}) + "\n"
        os.write(self.journal, line.encode())

    def change(self, host, power):
        with self.lock:
            if host.power == power:
                return
            host.power = power
            self.write({"event": "power", "host": host.name, "power": power})
            for listener in self.listeners:
                listener.put({"host": host.name, "power": power})

    def schedule(self, host, powers):
        """Lets the host come to each of the powers in turn; what was pending before is forgotten."""
        with self.lock:
            if host.pending is not None:
                host.pending.cancel()
                host.pending = None
            if not powers:
                return
            first, *rest = powers
            if host.stuck(first):
                return
            if host.power == first or host.delay(first) == 0:
                self.change(host, first)
                self.schedule(host, rest)
                return
            timer = threading.Timer(host.delay(first), self.arrive, (host, first, rest))
            timer.daemon = True
            host.pending = timer
            timer.start()

    def arrive(self, host, power, rest):
        with self.lock:
            # Cancelled just when it fired.
            if host.pending is not threading.current_thread():
                return
            host.pending = None
            self.change(host, power)
            self.schedule(host, rest)


def powers_of(reset_type):
    if reset_type in ("On", "ForceOn"):
        return ["On"]
    if reset_type in ("ForceOff", "GracefulShutdown"):
        return ["Off"]
    if reset_type in ("ForceRestart", "GracefulRestart"):
        return ["Off", "On"]
    raise error.NotSupportedError(f"Power state {reset_type} is not supported")


def install(app, world):
    def get_power_state(driver, identity):
        return world.hosts[driver._get(identity)["uuid"]].power

    def set_power_state(driver, identity, state):
        # Takes effect once the answer is in the journal, so that the order there is the order of cause and effect.
        flask.g.command = (world.hosts[driver._get(identity)["uuid"]], powers_of(state))

    fakedriver.FakeDriver.get_power_state = get_power_state
    fakedriver.FakeDriver.set_power_state = set_power_state

    @app.after_request
    def record(response):
        request = flask.request
        if request.method == "POST" and "/Actions/ComputerSystem." in request.path:
            host = world.hosts.get((request.view_args or {}).get("identity"))
            body = request.get_json(silent=True) or {}
            with world.lock:
                world.write(
                    {"event": "reset", "host": host.name if host else None, "resetType": body.get("ResetType"), "status": response.status_code}
                )
                if "command" in flask.g:
                    world.schedule(*flask.g.command)
        return response

    @app.route("/testbed/hosts/<uuid>", methods=["PUT"])
    def configure(uuid):
        wanted = flask.request.get_json()
        host = world.hosts[uuid]
        with world.lock:
            host.settings.update(wanted.get("settings", {}))
            if "power" in wanted:
                if host.pending is not None:
                    host.pending.cancel()
                    host.pending = None
                world.change(host, wanted["power"])
        return "", 204

    @app.route("/testbed/events")
    def events():
        listener = queue.Queue()
        with world.lock:
            for host in world.hosts.values():
                listener.put({"host": host.name, "power": host.power})
            world.listeners.append(listener)

        def lines():
            try:
                while True:
                    try:
                        yield json.dumps(listener.get(timeout=EVENTS_ALIVE_SECONDS)) + "\n"
                    except queue.Empty:
                        # Shows a listener that has gone.
                        yield "\n"
            finally:
                with world.lock:
                    world.listeners.remove(listener)

        return flask.Response(lines(), content_type="application/x-ndjson")


def run(config_path):
    with open(config_path) as file:
        config = json.load(file)
    password_path = os.path.join(config["directory"], "htpasswd")
    with open(password_path, "w") as file:
        hashed = bcrypt.hashpw(config["password"].encode(), bcrypt.gensalt(4, prefix=b"2b")).decode()
        file.write(f"{config['username']}:{hashed}\n")
    systems = config["systems"]
    main.app.configure(
        extra_config={
            "SUSHY_EMULATOR_FAKE_DRIVER": True,
            "SUSHY_EMULATOR_AUTH_FILE": password_path,
            "SUSHY_EMULATOR_STATE_DIR": config["directory"],
            "SUSHY_EMULATOR_FAKE_SYSTEMS": systems,
        }
    )
    install(main.app, World(systems, config["journal"]))
    main.app.run(host="127.0.0.1", port=config["port"], threaded=True)


if __name__ == "__main__":
    run(sys.argv[1])
