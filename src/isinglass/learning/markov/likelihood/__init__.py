"""Maximum likelihood: by gradients, in closed form, by proportional fitting, scaling, EM and sampling."""
