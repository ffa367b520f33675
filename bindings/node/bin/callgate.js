#!/usr/bin/env node
// Runs the command line of Callgate, which is in the package of the platform.

'use strict';

const { spawn } = require('node:child_process');
const { missingPackage, platformFile } = require('../dist/platform.js');

const program = platformFile('callgate');
if (program === undefined) {
  console.error(`error: ${missingPackage()}`);
  process.exit(2);
}
const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
// A gateway or server ends with its parent.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => child.kill(signal));
}
child.on('error', error => {
  console.error(`error: ${program} can't be run: ${error.message}`);
  process.exit(2);
});
child.on('exit', (status, signal) => {
  if (signal !== null) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  }
  process.exit(status ?? 2);
});
