// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

export interface Line {
  label: string;
  color: 'line-1' | 'line-2' | 'line-3';
  format: (value: number) => string;
}

interface Props {
  title: string;
  lines: Line[];
  /// The times first, then one list per line.
  data: (number | null)[][];
  height?: number;
}

/// Custom properties may depend on the colour scheme; only a real element knows what they come to.
function colorOf(host: Element, name: string): string {
  const probe = document.createElement('span');
  probe.className = `probe ${name}`;
  host.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}

/// Nobody points at a moment: the figures below are the latest.
function showLatest(plot: uPlot): void {
  const times = plot.data[0];
  if ((plot.cursor.left ?? -1) < 0 && times.length > 0) plot.setLegend({ idx: times.length - 1 });
}

export function Chart({ title, lines, data, height = 170 }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(data);
  latest.current = data;

  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const make = () => {
      plot.current?.destroy();
      const text = colorOf(element, 'text-muted');
      const grid = colorOf(element, 'grid');
      const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
      const format = lines[0]?.format ?? String;
      plot.current = new uPlot(
        {
          width: Math.max(200, element.clientWidth),
          height,
          cursor: { y: false },
          legend: { live: true },
          hooks: { ready: [showLatest] }, // it forgets what was set before
          scales: {
            x: { range: (_, min, max) => [Math.min(min, max - 60), max] },
            y: { range: (_, __, max) => [0, Math.max(4, max * 1.1)] },
          },
          axes: [
            { ...axis, space: 70, values: (_, at) => at.map((one) => new Date(one * 1000).toTimeString().slice(0, 8)) },
            { ...axis, size: 62, values: (_, all) => all.map((one) => (one === null ? '' : format(one))) },
          ],
          series: [
            { label: 'Time', value: (_, at) => (at === null ? '–' : new Date(at * 1000).toTimeString().slice(0, 8)) },
            ...lines.map((line) => ({
              label: line.label,
              stroke: colorOf(element, line.color),
              width: 1.75,
              points: { show: false },
              spanGaps: false,
              value: (_: uPlot, value: number | null) => (value === null ? '–' : line.format(value)),
            })),
          ],
        },
        latest.current as uPlot.AlignedData,
        element,
      );
    };
    make();
    const sizes = new ResizeObserver(() =>
      plot.current?.setSize({ width: Math.max(200, element.clientWidth), height }),
    );
    sizes.observe(element);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', make);
    addEventListener('postrider:theme', make);
    return () => {
      sizes.disconnect();
      dark.removeEventListener('change', make);
      removeEventListener('postrider:theme', make);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [title, height]);

  useEffect(() => {
    const now = plot.current;
    if (!now) return;
    now.setData(data as uPlot.AlignedData);
    showLatest(now);
  }, [data]);

  const said = lines
    .map((line, i) => {
      const values = data[i + 1];
      const last = values?.[values.length - 1];
      return `${line.label} ${last === null || last === undefined ? 'unknown' : line.format(last)}`;
    })
    .join(', ');
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <div ref={host} role="img" aria-label={`${title}: now ${said}`} />
    </figure>
  );
}
