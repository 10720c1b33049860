import { domainContracts } from '../contract/all.ts';
import { openStore } from './contract-store.ts';

domainContracts('SQLite', openStore);
