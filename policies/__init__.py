"""What a stack must keep to, checked by the engine in each preview and update; decision record 0045."""
