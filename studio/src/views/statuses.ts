// The statuses that an instance can have, those that are looked for most first.

export const STATUSES = ["running", "suspended", "compensating", "completed", "failed", "cancelled", "terminated"];
export const ENDED = ["completed", "failed", "cancelled", "terminated"];
