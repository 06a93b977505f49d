-- Instances that somebody looks for because something is wrong are few, and found among however many others. What runs
-- and completes as it should never comes into these.

CREATE INDEX instances_by_status ON instances (status, key) WHERE status NOT IN ('running', 'completed');

CREATE INDEX instances_with_error ON instances (key) WHERE error IS NOT NULL;
