"""Settings: the registry of members, plug-ins, typed settings, presets, and generated tables of settings."""
