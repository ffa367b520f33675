// Requests to the API, with the cookie of the page.

/** A request that failed, with the problem details of the server. */
export class RequestError extends Error {
  constructor(status, problem) {
    super(problem?.detail ?? `The server answered with status ${status}.`);
    this.status = status;
    this.code = problem?.code ?? "";
  }
}

/** Sends a request; returns its JSON body, or null. */
export async function request(method, path, body) {
  const headers = { "x-callgate-page": "1" };
  if (body !== undefined) headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), credentials: "same-origin" });
  } catch {
    throw new RequestError(0, { detail: "The server can't be reached. Check that `callgate serve` is running." });
  }
  const text = await response.text();
  let document = null;
  try {
    document = text === "" ? null : JSON.parse(text);
  } catch {
    document = null;
  }
  if (!response.ok) throw new RequestError(response.status, document);
  return document;
}
