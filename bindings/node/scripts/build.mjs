// Compiles the TypeScript to `dist`: CommonJS, and ES modules that export the same objects.

import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const compiler = createRequire(join(root, 'package.json')).resolve('typescript/bin/tsc');
rmSync(join(root, 'dist'), { recursive: true, force: true });
execFileSync(process.execPath, [compiler, '--project', join(root, 'tsconfig.json')], { stdio: 'inherit' });

// One copy of the code for both kinds of modules, so that `instanceof` and the native part are the same in both.
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
for (const entry of Object.values(exports)) {
  const name = entry.require?.default?.match(/^\.\/dist\/(.*)\.js$/)?.[1];
  if (name !== undefined) {
    for (const extension of ['mjs', 'd.mts']) {
      writeFileSync(join(root, 'dist', `${name}.${extension}`), `export * from './${name}.js';\n`);
    }
  }
}
