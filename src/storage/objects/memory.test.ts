import { systemClock } from '../../base/clock.ts';
import { objectStoreContract } from './contract.ts';
import { MemoryObjectStore } from './memory.ts';

objectStoreContract({
  name: 'memory',
  make: async () => new MemoryObjectStore(systemClock),
});
