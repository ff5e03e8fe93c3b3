// PerdureClient: the whole contract on one object. Building it touches no network. Answers are
// plain JSON values with the surrounding `{data}` taken off.

import { Groups } from "./generated/groups.js"
import { type ClientOptions, Wire } from "./wire.js"

export class PerdureClient extends Groups {
  constructor(options: ClientOptions) {
    super(new Wire(options))
  }
}
