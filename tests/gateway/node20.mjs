// The conformance suite imports a function that exists since Node 22, for a command that is not used here.
import { register } from "node:module";

const fs = "export * from 'node:fs'; export { default } from 'node:fs'; export const globSync = undefined;";
const hooks = `export const resolve = (specifier, context, next) =>
  specifier === "fs" && /[/]conformance(-next)?[/]/.test(context.parentURL)
    ? { url: ${JSON.stringify(`data:text/javascript,${encodeURIComponent(fs)}`)}, shortCircuit: true }
    : next(specifier, context);`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
