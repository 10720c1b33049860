// How a node gives its work to the others before it stops: clients are told of other leaders and coordinators, and while
// they still ask this one, it waits for them. Not for: stopping itself (base/lifecycle.ts).
import { FloeError } from '../../base/error.ts';
import { sendClientsAway } from '../../broker/draining.ts';
import { frontsOf } from '../../broker/elsewhere.ts';
import type { Broker } from '../../broker/index.ts';
import type { Membership } from './membership.ts';
import type { Node } from './node.ts';

/** Clients that have asked nothing for so long have gone. */
const QUIET_MS = 1_000;
const LOOK_EVERY_MS = 100;

/** Nothing for a node alone. Never rejects: who can't say good-bye goes anyway. */
export async function drain(node: Node, place: Membership, broker: Broker): Promise<void> {
  if (place.follower === undefined || !hasOthers(place)) return;
  const { clock, settings, logger } = node;
  const giveUpMs = clock.monotonic() + settings['cluster.drain.ms'];
  try {
    await place.drain();
  } catch (caught) {
    logger.warn({ error: FloeError.from(caught).message }, 'could not hand over before the stop');
  }
  const sent = sendClientsAway(broker.services);
  while (clock.monotonic() < giveUpMs && sent.quietMs() < QUIET_MS)
    await clock.sleep(LOOK_EVERY_MS);
}

/** Is there anybody whom clients could go to? */
const hasOthers = ({ cluster }: Membership) =>
  [...frontsOf(cluster)].some((nodeId) => nodeId !== cluster.self.nodeId);
