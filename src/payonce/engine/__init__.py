"""The engine: moves a batch's items forward. It sees protocols, never adapters or stores."""
