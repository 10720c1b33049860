// The states of one rewrite and every step between them, as a total table: SPEC.md says what each means. Pure.

export type RewriteStage =
  /** New files are being written; nobody has heard of them. */
  | 'writing'
  /** Written; the next commit is derived from the table afresh. */
  | 'written'
  /** A commit request is out. */
  | 'sent'
  /** An answer never came: history will tell. */
  | 'unknown'
  /** The table has the new files. */
  | 'committed'
  /** It never will: the new files go. */
  | 'abandoned'
  /** Given up while a request may still arrive: the files are left to their intents. */
  | 'left';

export type RewriteEvent =
  | 'wrote'
  | 'send'
  | 'accepted'
  /** Answered with a refusal of that very request, and no earlier one is out. */
  | 'refused'
  /** Refused, but an earlier request may still arrive. */
  | 'refusedLater'
  /** No answer, or one that proves nothing. */
  | 'unanswered'
  /** The table's history has the request's snapshot. */
  | 'found'
  /** History moved past what the request asserted without it. */
  | 'disproved'
  /** The inputs are gone, attempts are used up, or the process stops. */
  | 'giveUp';

type Row = Readonly<Record<RewriteEvent, RewriteStage>>;

const stay = (stage: RewriteStage): Row => ({
  wrote: stage,
  send: stage,
  accepted: stage,
  refused: stage,
  refusedLater: stage,
  unanswered: stage,
  found: stage,
  disproved: stage,
  giveUp: stage,
});

export const REWRITE_TRANSITIONS: Readonly<Record<RewriteStage, Row>> = {
  writing: { ...stay('writing'), wrote: 'written', giveUp: 'abandoned' },
  written: { ...stay('written'), send: 'sent', giveUp: 'abandoned' },
  sent: {
    ...stay('sent'),
    accepted: 'committed',
    refused: 'written',
    refusedLater: 'unknown',
    unanswered: 'unknown',
    found: 'committed',
    // The answer of the very request decides; only then may somebody give up.
    giveUp: 'left',
  },
  unknown: {
    ...stay('unknown'),
    // A further request may go while an earlier one may still arrive: both assert their parents, one can win.
    send: 'sent',
    found: 'committed',
    disproved: 'written',
    giveUp: 'left',
  },
  committed: stay('committed'),
  abandoned: stay('abandoned'),
  left: stay('left'),
};

export const nextStage = (stage: RewriteStage, event: RewriteEvent): RewriteStage =>
  REWRITE_TRANSITIONS[stage][event];

export const isOver = (stage: RewriteStage): boolean =>
  stage === 'committed' || stage === 'abandoned' || stage === 'left';
