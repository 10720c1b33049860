// Who clients are and what they may do, as the rest of the broker and the composition root see it.
export { CLUSTER_NAME } from '../../protocol/acls.ts';
export { Access } from './access.ts';
export type { Authorizer, Operation, Principal, Requester, ResourceType } from './authorizer.ts';
export { type ListenerAuth, type SecurityProtocol, usesSasl, usesTls } from './listener-auth.ts';
export {
  HTTP_LISTENER,
  httpListener,
  type ListenerSpec,
  listenersOf,
  type SplitSettings,
  splitListenerSettings,
} from './listeners.ts';
export { subjectName } from './principal-mapping.ts';
export { MIN_ITERATIONS, SCRAM, SCRAM_MECHANISMS, saltPassword } from './scram-keys.ts';
export {
  openSecurity,
  type SecureListener,
  type Security,
  type SecurityOptions,
} from './security.ts';
export { type SecuritySettings, securitySettings } from './settings.ts';
export type { TlsFiles } from './tls-files.ts';
