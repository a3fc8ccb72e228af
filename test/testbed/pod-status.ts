/** The status that a kubelet would report of a Pod with one container. */
import type { Container } from "./pod.ts";
import type { Exit } from "./processes.ts";

export interface ContainerRun {
  /** When the process started, or undefined while it waits to be started again. */
  startedAt: Date | undefined;
  ready: boolean;
  restarts: number;
  lastExit: { exit: Exit; startedAt: Date; finishedAt: Date } | undefined;
}

const seconds = (date: Date): string => date.toISOString().replace(/\.\d+Z$/, "Z");
const SIGNAL_CODES: Record<string, number> = { SIGHUP: 129, SIGINT: 130, SIGABRT: 134, SIGKILL: 137, SIGSEGV: 139, SIGTERM: 143 };

function terminated({ exit, startedAt, finishedAt }: NonNullable<ContainerRun["lastExit"]>): object {
  const exitCode = exit.code ?? SIGNAL_CODES[exit.signal ?? ""] ?? 255;
  return { terminated: { exitCode, reason: exitCode === 0 ? "Completed" : "Error", startedAt: seconds(startedAt), finishedAt: seconds(finishedAt) } };
}

/** `since` gives the time of the last change of a condition's status. */
export function podStatus(container: Container, ip: string, podStartedAt: Date, run: ContainerRun, since: (type: string, status: boolean) => Date): object {
  const condition = (type: string, status: boolean): object => ({ type, status: status ? "True" : "False", lastTransitionTime: seconds(since(type, status)) });
  return {
    phase: "Running",
    podIP: ip,
    podIPs: [{ ip }],
    startTime: seconds(podStartedAt),
    conditions: [condition("PodScheduled", true), condition("Initialized", true), condition("ContainersReady", run.ready), condition("Ready", run.ready)],
    containerStatuses: [
      {
        name: container.name,
        image: container.image,
        imageID: container.image,
        ready: run.ready,
        started: run.startedAt !== undefined,
        restartCount: run.restarts,
        state: run.startedAt === undefined ? { waiting: { reason: "CrashLoopBackOff" } } : { running: { startedAt: seconds(run.startedAt) } },
        lastState: run.lastExit === undefined ? {} : terminated(run.lastExit),
      },
    ],
  };
}
