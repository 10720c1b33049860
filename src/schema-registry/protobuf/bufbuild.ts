// @bufbuild/protobuf, loaded by the first Protobuf schema: 15 MB that most nodes never need.
import { lazyPackage } from '../../base/lazy.ts';

/** The library itself. */
export const bufbuild = lazyPackage<typeof import('@bufbuild/protobuf')>('@bufbuild/protobuf');
/** Its generated code of google/protobuf. */
export const wkt = lazyPackage<typeof import('@bufbuild/protobuf/wkt')>('@bufbuild/protobuf/wkt');
/** Messages seen through their descriptors. */
export const reflection = lazyPackage<typeof import('@bufbuild/protobuf/reflect')>(
  '@bufbuild/protobuf/reflect',
);
