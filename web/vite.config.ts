// The page is built into dist/, which is kept in the tree and embedded in the server's program.
// A build of the same sources is the same to the byte.
import {defineConfig} from 'vite';

export default defineConfig({
  base: '/ui/',
  oxc: {jsx: {runtime: 'automatic', importSource: 'preact'}},
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2022',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    modulePreload: {polyfill: false},
    assetsInlineLimit: 0,
    cssCodeSplit: true,
    sourcemap: false,
    reportCompressedSize: false,
  },
});
