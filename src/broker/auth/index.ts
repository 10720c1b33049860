// Who clients are and what they may do, as the rest of the broker and the composition root see it.
export { Access } from './access.ts';
export type { Authorizer, Operation, Principal, ResourceType } from './authorizer.ts';
export { type ListenerAuth, usesSasl } from './listener-auth.ts';
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
export { openSecurity, type Security } from './security.ts';
export { type SecuritySettings, securitySettings } from './settings.ts';
export type { TlsFiles } from './tls-files.ts';
