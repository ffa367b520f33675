// Writes the npm packages: `callgate`, and the one of a platform with the native part and the command line.

import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const USAGE = `Write the npm packages.

usage: node scripts/pack.mjs [--main] [--target TARGET --addon PATH --binary PATH [--licenses PATH]] --output DIR

  --main            Write the package \`callgate\`, whose \`dist\` is built
  --target TARGET   Write the package of a platform, by its Rust target
  --addon PATH      The library \`libcallgate_node\` of this target
  --binary PATH     The program \`callgate\` of this target
  --licenses PATH   The licences of third-party software that is compiled in
  --output DIR      Write the tarballs to this directory`;

/** The platforms, by their Rust target. */
const PLATFORMS = {
  'aarch64-unknown-linux-gnu': { os: 'linux', cpu: 'arm64', libc: 'glibc', name: 'linux-arm64-gnu' },
  'aarch64-unknown-linux-musl': { os: 'linux', cpu: 'arm64', libc: 'musl', name: 'linux-arm64-musl' },
  'x86_64-unknown-linux-gnu': { os: 'linux', cpu: 'x64', libc: 'glibc', name: 'linux-x64-gnu' },
  'x86_64-unknown-linux-musl': { os: 'linux', cpu: 'x64', libc: 'musl', name: 'linux-x64-musl' },
};

const home = dirname(dirname(fileURLToPath(import.meta.url)));
const project = dirname(dirname(home));

function fail(message) {
  console.error(`error: ${message}\n\n${USAGE}`);
  process.exit(2);
}

function pack(directory, output) {
  for (const file of ['LICENSE-APACHE', 'LICENSE-MIT']) {
    copyFileSync(join(project, file), join(directory, file));
  }
  const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', output];
  const [name] = execFileSync('npm', args, { cwd: directory, encoding: 'utf8' }).trim().split('\n').slice(-1);
  console.log(join(output, name));
}

function packMain(main, staging, output) {
  for (const part of ['bin', 'dist', 'README.md']) {
    cpSync(join(home, part), join(staging, part), { recursive: true });
  }
  const { devDependencies, scripts, ...published } = main;
  writeFileSync(join(staging, 'package.json'), `${JSON.stringify(published, null, 2)}\n`);
  pack(staging, output);
}

function packPlatform(main, options, staging, output) {
  const platform = PLATFORMS[options.target];
  if (platform === undefined) {
    fail(`there is no package for \`${options.target}\`; the targets are ${Object.keys(PLATFORMS).join(', ')}`);
  }
  copyFileSync(options.addon, join(staging, 'callgate.node'));
  copyFileSync(options.binary, join(staging, 'callgate'));
  chmodSync(join(staging, 'callgate'), 0o755);
  const files = ['callgate', 'callgate.node', 'LICENSE-APACHE', 'LICENSE-MIT'];
  if (options.licenses !== undefined) {
    copyFileSync(options.licenses, join(staging, 'THIRD-PARTY-LICENSES'));
    files.push('THIRD-PARTY-LICENSES');
  }
  const manifest = {
    name: `${main.name}-${platform.name}`,
    version: main.version,
    description: `The native part of \`${main.name}\` for ${options.target}`,
    license: main.license,
    engines: main.engines,
    os: [platform.os],
    cpu: [platform.cpu],
    libc: [platform.libc],
    main: 'callgate.node',
    files,
  };
  writeFileSync(join(staging, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  pack(staging, output);
}

const { values: options } = parseArgs({
  options: {
    main: { type: 'boolean' },
    target: { type: 'string' },
    addon: { type: 'string' },
    binary: { type: 'string' },
    licenses: { type: 'string' },
    output: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  },
});
if (options.help) {
  console.log(USAGE);
  process.exit(0);
}
if (options.output === undefined || (options.target !== undefined && !(options.addon && options.binary))) {
  fail('--output is missing, or --addon and --binary of the target are');
}
const output = resolve(options.output);
mkdirSync(output, { recursive: true });
const main = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
const staging = mkdtempSync(join(tmpdir(), 'callgate-npm-'));
try {
  if (options.main) {
    mkdirSync(join(staging, 'main'));
    packMain(main, join(staging, 'main'), output);
  }
  if (options.target !== undefined) {
    mkdirSync(join(staging, 'platform'));
    packPlatform(main, options, join(staging, 'platform'), output);
  }
} finally {
  rmSync(staging, { recursive: true, force: true });
}
