// Who clients are and what they may do, as the rest of the broker and the composition root see it.
export { CLUSTER_NAME } from '../../protocol/acls.ts';
export { Access } from './access.ts';
export type { Authorizer, Principal, Requester } from './authorizer.ts';
export { type ListenerAuth, type SecurityProtocol, usesSasl, usesTls } from './listener-auth.ts';
export {
  type ListenerSpec,
  listenersOf,
  type SplitSettings,
  splitListenerSettings,
} from './listeners.ts';
export {
  openSecurity,
  type SecureListener,
  type Security,
  type SecurityOptions,
} from './security.ts';
export { type SecuritySettings, securitySettings } from './settings.ts';
