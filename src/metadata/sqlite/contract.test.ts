import { domainContracts } from '../contract/all.ts';
import { namesContract } from '../contract/names.ts';
import { openStore } from './contract-store.ts';

domainContracts('SQLite', openStore);
namesContract('SQLite', openStore);
