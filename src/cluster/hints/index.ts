// Hints between nodes: the public face of the folder.
export { type HintListener, Hints, type HintsOptions } from './hints.ts';
