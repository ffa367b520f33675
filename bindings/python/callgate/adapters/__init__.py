"""Adapters: `callgate.adapters.langchain`, `openai_agents`, `pydantic_ai`, `fastmcp` and `mcp_server`."""
