"""What the adapters on official SDKs share: the SDK shapes a call, payonce's own transport sends its stored bytes."""
