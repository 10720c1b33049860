// zod, loaded by the first request with a body: 13 MB that a broker whose registry is elsewhere never needs.
import { lazyPackage } from '../base/lazy.ts';

export const zod = lazyPackage<typeof import('zod')>('zod');
