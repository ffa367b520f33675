// The package with the native part and the command line.

/** The names of the packages for this platform; npm installs the one that fits the C library. */
export function platformPackages(): string[] {
  const name = `callgate-${process.platform}-${process.arch}`;
  return process.platform === 'linux' ? [`${name}-gnu`, `${name}-musl`] : [name];
}

/** The path of a file in the installed package for this platform. */
export function platformFile(file: string): string | undefined {
  for (const name of platformPackages()) {
    try {
      return require.resolve(`${name}/${file}`);
    } catch {
      // Another one may be installed.
    }
  }
  return undefined;
}

/** What to do if there is none. */
export function missingPackage(): string {
  const names = platformPackages().join('` or `');
  return `the package \`${names}\` is not installed; install without \`--omit=optional\`, on a supported platform`;
}
