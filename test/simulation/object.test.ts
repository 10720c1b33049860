// Flushes to an object store that loses replies, writes late and fails in part.
import { testSeeds } from './seeds.ts';

testSeeds('object');
