// Draws curves with uPlot in the colours of the theme. A table below them has their values.
import {useEffect, useRef} from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import {colours} from '../app/settings';
import {number_text, tick_texts, time_text, utc} from '../app/format';
import {is_dark} from './ansi_text';
import {useSize} from './parts';

export interface Curve {
  label: string;
  x: number[];
  y: (number | null)[];
}

/** Twelve colours, distinct on the light or the dark background. Dashes distinguish the curves from the 13th on. */
const kLight = [
  '#1f5fbf',
  '#b3541e',
  '#17693a',
  '#8a3fa8',
  '#a3195b',
  '#0b6370',
  '#7d5200',
  '#4d5fd6',
  '#5a6b00',
  '#b3261e',
  '#39424e',
  '#0f766e',
];
const kDark = [
  '#84b4ff',
  '#ffab73',
  '#5cc98a',
  '#d5a3f5',
  '#ff8fbe',
  '#5cc8d6',
  '#e8b44c',
  '#a7b3ff',
  '#c2d24a',
  '#ff8f87',
  '#c6cdd6',
  '#5fd3c6',
];
export function curve_colour(i: number): string {
  const list = is_dark() ? kDark : kLight;
  return list[i % list.length]!;
}

/** One x axis for all curves: uPlot requires columns of equal length. */
function joined(curves: Curve[]): uPlot.AlignedData {
  if (curves.length === 1) return [curves[0]!.x, curves[0]!.y];
  return uPlot.join(curves.map((curve) => [curve.x, curve.y] as uPlot.AlignedData));
}

/** In whole seconds, because the labels of a time axis have no fractions. */
const kTimeSteps = [
  1,
  2,
  5,
  10,
  15,
  30,
  60,
  120,
  300,
  600,
  900,
  1800,
  3600,
  7200,
  10800,
  21600,
  43200,
  ...Array.from({length: 12}, (_, i) => 86400 * 2 ** i),
];
const kByteSteps = Array.from({length: 42}, (_, i) => 2 ** i);

interface Range {
  min: number;
  max: number;
}

/** The part of an x axis with the values `x` that a scale shows. Null: the scale shows all of it, or nothing of it. */
function zoom_of(x: readonly number[], {min, max}: Partial<Range>): Range | null {
  const [first, last] = [x[0], x.at(-1)];
  if (min === undefined || max === undefined || first === undefined || last === undefined) return null;
  return (min > first || max < last) && min < last && max > first ? {min, max} : null;
}

/** The user zooms by dragging, until a double click. New data keep the zoom; for another x axis, give the chart another key. */
export function Chart({
  title,
  curves,
  time,
  height = 200,
  format = number_text,
  x_label,
  bytes,
  from_zero,
}: {
  bytes?: boolean;
  from_zero?: boolean;
  title: string;
  curves: Curve[];
  time: boolean;
  height?: number;
  format?: (v: number | null | undefined) => string;
  x_label?: string;
}) {
  const ref = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const zoom = useRef<Range | null>(null);
  const {width} = useSize(ref);
  const in_utc = utc.value;
  const theme = colours.value;
  const shape = curves.map((curve) => curve.label).join('\n');
  useEffect(() => {
    const element = ref.current;
    if (!element || width < 50 || !curves.length) return;
    const style = getComputedStyle(element);
    const text = style.getPropertyValue('color');
    const axis: uPlot.Axis = {
      stroke: text,
      grid: {stroke: is_dark() ? '#2a323d' : '#e4e7ec', width: 1},
      ticks: {stroke: is_dark() ? '#2a323d' : '#e4e7ec', width: 1},
      font: '11px system-ui, sans-serif',
    };
    const options: uPlot.Options = {
      width,
      height,
      padding: [8, 8, 0, 0],
      pxAlign: 1,
      legend: {show: curves.length <= 12, live: true},
      cursor: {points: {size: 6}, drag: {x: true, y: false}, sync: {key: 'charts'}},
      scales: {
        x: {time},
        y: from_zero
          ? {range: (_, low_value, high_value) => [Math.min(0, low_value ?? 0), (high_value || 1) * 1.08]}
          : {},
      },
      // uPlot calls this after a zoom or a double click, here or on another chart of the page, and after new data.
      hooks: {
        setScale: [
          (changed, key) => {
            if (key === 'x') zoom.current = zoom_of(changed.data[0] as number[], changed.scales['x'] as Partial<Range>);
          },
        ],
      },
      tzDate: in_utc ? (ts) => uPlot.tzDate(new Date(ts * 1000), 'Etc/UTC') : undefined,
      axes: [
        {
          ...axis,
          size: 30,
          values: (_, list) =>
            time
              ? tick_texts(
                  list.map((v) => v * 1000),
                  in_utc,
                )
              : list.map(number_text),
          ...(time ? {space: 76, incrs: kTimeSteps} : {}),
        },
        {
          ...axis,
          size: 66,
          ...(bytes ? {incrs: kByteSteps} : {}),
          values: (_, list) => list.map((v) => (v === null ? '' : format(v))),
        },
      ],
      series: [
        {
          label: time ? 'time' : (x_label ?? 'step'),
          value: (_, v) => (v === null || v === undefined ? '–' : time ? time_text(v * 1000, in_utc) : number_text(v)),
        },
        ...curves.map((curve, i): uPlot.Series => ({
          label: curve.label,
          stroke: curve_colour(i),
          width: 1.6,
          dash: i >= 12 ? [6, 3 + Math.floor(i / 12)] : undefined,
          spanGaps: true,
          points: {show: curve.x.length < 3, size: 5},
          value: (_, v) => format(v),
        })),
      ],
    };
    const made = new uPlot(options, joined(curves), element);
    if (zoom.current) made.setScale('x', {...zoom.current});
    plot.current = made;
    return () => {
      made.destroy();
      plot.current = null;
    };
  }, [shape, width > 0, height, in_utc, theme, time]);
  useEffect(() => {
    if (width >= 50) plot.current?.setSize({width, height});
  }, [width, height]);
  useEffect(() => {
    if (!plot.current || !curves.length) return;
    const data = joined(curves);
    if (zoom.current) zoom.current = zoom_of(data[0] as number[], zoom.current);
    // setData() resets the scale of the x axis. uPlot draws only after both calls.
    plot.current.setData(data);
    if (zoom.current) plot.current.setScale('x', {...zoom.current});
  }, [curves]);
  const last = curves.map((curve) => ({
    label: curve.label,
    value: curve.y.filter((v) => v !== null).at(-1),
    min: low(curve.y),
    max: high(curve.y),
    points: curve.x.length,
    end: curve.x.at(-1),
  }));
  return (
    <figure class="chart">
      <figcaption>
        <strong>{title}</strong>
      </figcaption>
      <div ref={ref} class="plot" role="img" aria-label={`Curves of ${title}; the table below has the values`} />
      <details>
        <summary>As a table</summary>
        <div class="scroll">
          <table class="grid">
            <caption class="hidden-text">{title}</caption>
            <thead>
              <tr>
                <th>Curve</th>
                <th class="num">Last</th>
                <th class="num">Min</th>
                <th class="num">Max</th>
                <th class="num">Points</th>
                <th>Last at</th>
              </tr>
            </thead>
            <tbody>
              {last.map((each) => (
                <tr key={each.label}>
                  <th scope="row">
                    <bdi>{each.label}</bdi>
                  </th>
                  <td class="num">{format(each.value)}</td>
                  <td class="num">{format(each.min)}</td>
                  <td class="num">{format(each.max)}</td>
                  <td class="num">{each.points}</td>
                  <td class="tnum">
                    {each.end === undefined ? '' : time ? time_text(each.end * 1000, in_utc) : number_text(each.end)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}

function low(values: (number | null)[]): number | undefined {
  let best: number | undefined;
  for (const v of values) if (v !== null && (best === undefined || v < best)) best = v;
  return best;
}
function high(values: (number | null)[]): number | undefined {
  let best: number | undefined;
  for (const v of values) if (v !== null && (best === undefined || v > best)) best = v;
  return best;
}
