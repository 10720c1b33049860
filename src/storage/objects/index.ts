// The object stores' public face.
export { type Faults, faultyStore, noFaults } from './decorators/faulty.ts';
export { keyOfUri, objectUri } from './keys.ts';
export { LocalObjectStore } from './local.ts';
export { MemoryObjectStore } from './memory.ts';
export type { GetOptions, ObjectInfo, ObjectStore, PutOptions } from './object-store.ts';
export { type OpenOptions, openObjectStore } from './open.ts';
export { probeConditionalWrites } from './probe.ts';
export { type Purpose, storeFor } from './purposes.ts';
export { objectSettings } from './settings.ts';
export { KeyDispenser, type StoreKeys, VENDED } from './vended.ts';
