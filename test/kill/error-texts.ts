// What an error of kafkajs says, without what differs from one time to the next.

/** Its type or message, addresses left out. */
export function errorTexts(caught: unknown): string {
  const { type, message } = caught as { readonly type?: string; readonly message?: string };
  const text = type ?? message ?? String(caught);
  return text.replaceAll(/\d+\.\d+\.\d+\.\d+:\d+/g, 'BROKER').replaceAll(/-\d+/g, '-N');
}
