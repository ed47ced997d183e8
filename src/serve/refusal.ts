/** What a request is refused with. */

export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly more: {
      /** The field that is wrong. */
      readonly param?: string;
      /** A name for programs. */
      readonly code?: string;
      readonly headers?: { readonly [name: string]: string };
    } = {},
  ) {
    super(message);
  }
}

/** An error in the form that clients of OpenAI's interface read. */
export function errorBody(status: number, message: string, { param, code }: Refusal["more"] = {}): object {
  const type =
    status === 401 || status === 403 ? "authentication_error" : status === 429 ? "rate_limit_error" : status >= 500 ? "server_error" : "invalid_request_error";
  return { error: { message, type, param: param ?? null, code: code ?? null } };
}
