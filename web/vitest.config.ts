import {defineConfig} from 'vitest/config';

export default defineConfig({
  oxc: {jsx: {runtime: 'automatic', importSource: 'preact'}},
  // A busy machine is no reason to fail.
  test: {include: ['src/**/*.test.ts'], environment: 'node', testTimeout: 60_000},
});
