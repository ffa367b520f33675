"""Adapters for agent frameworks: `callgate.adapters.langchain`, `openai_agents`, `pydantic_ai` and `fastmcp`."""
