"""The foundation of both engines, in layers: a room imports only from the rooms before it, see docs/architecture.md."""
