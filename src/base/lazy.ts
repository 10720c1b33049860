// Packages, and what is made with them, on first use: what most nodes never need shouldn't take memory and start-up time in
// each of their threads. For packages alone: a module of our own loaded like this would be a second copy of it in tests.
import { createRequire } from 'node:module';

const load = createRequire(import.meta.url);

/** What `make` returns, made when it is first asked for. */
export function lazy<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** The package `name` once it is asked for; give its type as `typeof import('name')`. */
export function lazyPackage<T>(name: string): () => T {
  return lazy(() => load(name) as T);
}
