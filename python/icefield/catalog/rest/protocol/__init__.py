"""Requests and answers of the REST protocol: what is sent, how, and what the answers mean."""
