// @vitest-environment jsdom
// Tests what the user has zoomed to, with uPlot itself on a canvas that draws nothing.
import {h, render} from 'preact';
import {act} from 'preact/test-utils';
import {afterEach, beforeEach, expect, test, vi} from 'vitest';
import type UPlot from 'uplot';
import {Chart, type Curve} from './chart';

const plots = vi.hoisted(() => {
  // uPlot reads it when it is loaded.
  window.matchMedia = () => ({matches: false, addEventListener: () => {}, removeEventListener: () => {}}) as never;
  return [] as UPlot[];
});
vi.mock('uplot', async (original) => {
  const {default: real} = await original<{default: typeof UPlot}>();
  const recorded = function (...given: ConstructorParameters<typeof UPlot>) {
    const made = new real(...given);
    plots.push(made);
    return made;
  };
  return {default: Object.assign(recorded, real)};
});

let root: HTMLElement;
beforeEach(() => {
  vi.stubGlobal(
    'ResizeObserver',
    class {
      observe() {}
      disconnect() {}
    },
  );
  vi.stubGlobal(
    'Path2D',
    class {
      moveTo() {}
      lineTo() {}
      rect() {}
      arc() {}
      closePath() {}
    },
  );
  const canvas = new Proxy({} as Record<string | symbol, unknown>, {
    get: (known, name) => (name in known ? known[name] : () => ({width: 10})),
  });
  vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(canvas as never);
  vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(800);
  root = document.body.appendChild(document.createElement('div'));
});
afterEach(async () => {
  await act(() => render(null, root));
  root.remove();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** A curve over 0, 1, ... up to `last`. */
const curve = (label: string, last: number, first = 0): Curve => {
  const x = Array.from({length: last - first + 1}, (_, i) => first + i);
  return {label, x, y: x};
};
const show = (...curves: Curve[]) => show_with(200, curves);
const show_with = (height: number, curves: Curve[]) =>
  act(() => render(h(Chart, {title: 'loss', curves, time: false, height}), root));
const plot = () => plots.at(-1)!;
const zoom_to = (min: number, max: number) => act(() => plot().setScale('x', {min, max}));
const shown = () => [plot().scales['x']!.min, plot().scales['x']!.max];

test('new data leave the part of the x axis that the user has chosen, until a double click', async () => {
  await show(curve('a', 10));
  expect(shown()).toEqual([0, 10]);
  await show(curve('a', 20));
  expect(shown()).toEqual([0, 20]);

  await zoom_to(2, 5);
  await show(curve('a', 30));
  expect(shown()).toEqual([2, 5]);
  expect(plot().scales['y']!.max).toBeLessThan(10);
  expect(plot().data[0].length).toBe(31);

  await act(() => {
    plot().over.dispatchEvent(new MouseEvent('dblclick'));
  });
  expect(shown()).toEqual([0, 30]);
  await show(curve('a', 40));
  expect(shown()).toEqual([0, 40]);
});

test('another curve and another height leave the part of the x axis that the user has chosen', async () => {
  await show(curve('a', 10));
  const before = plot();
  await zoom_to(2, 5);
  await show(curve('b', 10), curve('a', 12));
  expect(plot()).not.toBe(before);
  expect(shown()).toEqual([2, 5]);
  const curves = [curve('b', 11), curve('a', 13)];
  await show(...curves);
  expect(shown()).toEqual([2, 5]);
  await show_with(300, curves);
  const higher = plot();
  await show_with(400, curves);
  expect(plot()).not.toBe(higher);
  expect(shown()).toEqual([2, 5]);
});

test('a part of the x axis that has no data any more is left', async () => {
  await show(curve('a', 10));
  await zoom_to(2, 5);
  await show(curve('a', 20, 8));
  expect(shown()).toEqual([8, 20]);
});
