// protobufjs, loaded by the first Protobuf schema: a table worker of other formats never needs it.
import type protobuf from 'protobufjs';
import { lazyPackage } from '../../base/lazy.ts';

/** Parser and reflection. */
export const protobufjs = lazyPackage<typeof protobuf>('protobufjs');
/** Serialised descriptors; adds `Root.fromDescriptor` to the above. */
export const descriptors = lazyPackage<typeof import('protobufjs/ext/descriptor.js')>(
  'protobufjs/ext/descriptor.js',
);
