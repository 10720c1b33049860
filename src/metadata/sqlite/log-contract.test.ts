import { logContract } from '../contract/log.ts';
import { openStore } from './contract-store.ts';

logContract('SQLite', openStore);
