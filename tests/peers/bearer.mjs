// Loaded before a peer that has no option for it: each request goes with the token in BEARER, and nothing else
// changes. Node's own fetch and the undici package share one dispatcher; node:http is asked for its own way.
import http from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

const authorization = `Bearer ${process.env.BEARER}`;
const named = (headers) =>
  Array.isArray(headers)
    ? [...headers, "authorization", authorization]
    : { ...(headers?.entries ? Object.fromEntries(headers) : headers), authorization };

const { getGlobalDispatcher, setGlobalDispatcher } = createRequire(join(process.env.PACKAGES, "of.js"))("undici");
setGlobalDispatcher(
  getGlobalDispatcher().compose(
    (dispatch) => (options, handler) => dispatch({ ...options, headers: named(options.headers) }, handler),
  ),
);
const plain = http.request;
http.request = (options, ...others) => plain({ ...options, headers: named(options.headers) }, ...others);
