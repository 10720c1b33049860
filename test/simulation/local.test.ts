// Write-ahead files on a disk that keeps only what was synced.
import { testSeeds } from './seeds.ts';

testSeeds('local');
