/** A small registry of Prometheus metrics in text form. */

export type Labels = Readonly<Record<string, string>>;

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}

function series(name: string, labels: Labels): string {
  const pairs = Object.entries(labels)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([label, value]) => `${label}="${escaped(value)}"`);
  return pairs.length === 0 ? name : `${name}{${pairs.join(",")}}`;
}

interface Metric {
  lines(): string[];
}

/** A count that only grows. */
export class Counter implements Metric {
  readonly #name: string;
  readonly #values = new Map<string, number>();

  constructor(name: string) {
    this.#name = name;
  }

  add(labels: Labels = {}, amount = 1): void {
    const key = series(this.#name, labels);
    this.#values.set(key, (this.#values.get(key) ?? 0) + amount);
  }

  lines(): string[] {
    return [...this.#values].map(([key, value]) => `${key} ${value}`);
  }
}

/** A value that is asked for when the metrics are read. */
export class Gauge implements Metric {
  readonly #name: string;
  readonly #read: () => readonly (readonly [Labels, number])[];

  constructor(name: string, read: () => readonly (readonly [Labels, number])[]) {
    this.#name = name;
    this.#read = read;
  }

  lines(): string[] {
    return this.#read().map(([labels, value]) => `${series(this.#name, labels)} ${value}`);
  }
}

interface Buckets {
  labels: Labels;
  counts: number[];
  sum: number;
  count: number;
}

/** How values (seconds) are spread. */
export class Histogram implements Metric {
  readonly #name: string;
  readonly #bounds: readonly number[];
  readonly #series = new Map<string, Buckets>();

  constructor(name: string, bounds: readonly number[]) {
    this.#name = name;
    this.#bounds = bounds;
  }

  observe(value: number, labels: Labels = {}): void {
    const key = series(this.#name, labels);
    let found = this.#series.get(key);
    if (found === undefined) this.#series.set(key, (found = { labels, counts: this.#bounds.map(() => 0), sum: 0, count: 0 }));
    found.sum += value;
    found.count++;
    for (const [index, bound] of this.#bounds.entries()) {
      if (value <= bound) found.counts[index] = (found.counts[index] ?? 0) + 1;
    }
  }

  lines(): string[] {
    return [...this.#series.values()].flatMap(({ labels, counts, sum, count }) => [
      ...this.#bounds.map((bound, index) => `${series(`${this.#name}_bucket`, { ...labels, le: String(bound) })} ${counts[index] ?? 0}`),
      `${series(`${this.#name}_bucket`, { ...labels, le: "+Inf" })} ${count}`,
      `${series(`${this.#name}_sum`, labels)} ${sum}`,
      `${series(`${this.#name}_count`, labels)} ${count}`,
    ]);
  }
}

export class Metrics {
  readonly #metrics = new Map<string, { help: string; type: string; metric: Metric }>();

  counter(name: string, help: string): Counter {
    return this.#add(name, help, "counter", new Counter(name));
  }

  gauge(name: string, help: string, read: () => readonly (readonly [Labels, number])[]): Gauge {
    return this.#add(name, help, "gauge", new Gauge(name, read));
  }

  histogram(name: string, help: string, bounds: readonly number[] = [0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300, 1200]): Histogram {
    return this.#add(name, help, "histogram", new Histogram(name, bounds));
  }

  /** The text that a scrape gets. */
  text(): string {
    return (
      [...this.#metrics]
        .map(([name, { help, type, metric }]) => [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...metric.lines()].join("\n"))
        .join("\n") + "\n"
    );
  }

  #add<M extends Metric>(name: string, help: string, type: string, metric: M): M {
    if (this.#metrics.has(name)) throw new TypeError(`metric ${name} is registered twice`);
    this.#metrics.set(name, { help, type, metric });
    return metric;
  }
}
