//! Table of supported MCP clients: locations and formats of their config files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

/// An MCP client whose config file lists its servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Client {
    /// Claude Desktop
    ClaudeDesktop,
    /// Claude Code
    ClaudeCode,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    #[value(name = "vscode")]
    VsCode,
    /// Gemini CLI
    Gemini,
    /// Codex
    Codex,
    /// Cline
    Cline,
}

/// The format of a config file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConfigSyntax {
    /// JSON; comments and trailing commas are accepted.
    Json,
    Toml,
}

/// Properties of a client.
#[derive(Debug)]
pub(super) struct ClientProperties {
    pub(super) title: &'static str,
    pub(super) syntax: ConfigSyntax,
    /// Key paths to the objects that contain servers; `*` is every member.
    pub(super) server_paths: &'static [&'static [&'static str]],
    /// The key of the URL of a server that speaks streamable HTTP.
    pub(super) url_key: &'static str,
    /// The type of such a server, where it has one.
    pub(super) http_type: &'static str,
    /// Whether a server with a URL and no type uses SSE, the transport before streamable HTTP.
    pub(super) is_sse_default: bool,
    /// How to make the client load the changed file.
    pub(super) restart_hint: &'static str,
    user: UserConfigFile,
    project: Option<&'static str>,
}

#[derive(Debug)]
struct UserConfigFile {
    /// An environment variable that overrides the directory, and the file name in it.
    override_variable: Option<(&'static str, &'static str)>,
    base: BaseDirectory,
    path: &'static str,
}

#[derive(Debug)]
enum BaseDirectory {
    Home,
    /// The operating system's directory for application settings.
    Settings,
}

/// An operating system, as far as file locations differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperatingSystem {
    Linux,
    MacOs,
    Windows,
}

impl OperatingSystem {
    pub(super) fn current() -> Self {
        match std::env::consts::OS {
            "macos" => Self::MacOs,
            "windows" => Self::Windows,
            _ => Self::Linux,
        }
    }
}

impl Client {
    pub(super) fn properties(self) -> &'static ClientProperties {
        match self {
            Self::ClaudeDesktop => &ClientProperties {
                title: "Claude Desktop",
                syntax: ConfigSyntax::Json,
                server_paths: &[&["mcpServers"]],
                url_key: "url",
                http_type: "http",
                is_sse_default: false,
                restart_hint: "Quit and restart Claude Desktop: closing its window is not enough",
                user: UserConfigFile {
                    override_variable: None,
                    base: BaseDirectory::Settings,
                    path: "Claude/claude_desktop_config.json",
                },
                project: None,
            },
            Self::ClaudeCode => &ClientProperties {
                title: "Claude Code",
                syntax: ConfigSyntax::Json,
                server_paths: &[&["mcpServers"], &["projects", "*", "mcpServers"]],
                url_key: "url",
                http_type: "http",
                is_sse_default: false,
                restart_hint: "Restart Claude Code: open sessions keep their current servers",
                user: UserConfigFile {
                    override_variable: Some(("CLAUDE_CONFIG_DIR", ".claude.json")),
                    base: BaseDirectory::Home,
                    path: ".claude.json",
                },
                project: Some(".mcp.json"),
            },
            Self::Cursor => &ClientProperties {
                title: "Cursor",
                syntax: ConfigSyntax::Json,
                server_paths: &[&["mcpServers"]],
                url_key: "url",
                http_type: "http",
                is_sse_default: false,
                restart_hint: "Restart Cursor",
                user: UserConfigFile {
                    override_variable: None,
                    base: BaseDirectory::Home,
                    path: ".cursor/mcp.json",
                },
                project: Some(".cursor/mcp.json"),
            },
            Self::VsCode => &ClientProperties {
                title: "Visual Studio Code",
                syntax: ConfigSyntax::Json,
                server_paths: &[&["servers"], &["mcp", "servers"]],
                url_key: "url",
                http_type: "http",
                is_sse_default: false,
                restart_hint: "Restart the servers in Visual Studio Code (`MCP: List Servers`), or restart Visual Studio Code",
                user: UserConfigFile {
                    override_variable: None,
                    base: BaseDirectory::Settings,
                    path: "Code/User/mcp.json",
                },
                project: Some(".vscode/mcp.json"),
            },
            Self::Gemini => &ClientProperties {
                title: "Gemini CLI",
                syntax: ConfigSyntax::Json,
                server_paths: &[&["mcpServers"]],
                url_key: "httpUrl",
                http_type: "http",
                is_sse_default: false,
                restart_hint: "Restart Gemini CLI",
                user: UserConfigFile {
                    override_variable: Some(("GEMINI_CLI_HOME", ".gemini/settings.json")),
                    base: BaseDirectory::Home,
                    path: ".gemini/settings.json",
                },
                project: Some(".gemini/settings.json"),
            },
            Self::Codex => &ClientProperties {
                title: "Codex",
                syntax: ConfigSyntax::Toml,
                server_paths: &[&["mcp_servers"]],
                url_key: "url",
                http_type: "http",
                is_sse_default: false,
                restart_hint: "Restart Codex",
                user: UserConfigFile {
                    override_variable: Some(("CODEX_HOME", "config.toml")),
                    base: BaseDirectory::Home,
                    path: ".codex/config.toml",
                },
                project: Some(".codex/config.toml"),
            },
            Self::Cline => &ClientProperties {
                title: "Cline",
                syntax: ConfigSyntax::Json,
                server_paths: &[&["mcpServers"]],
                url_key: "url",
                http_type: "streamableHttp",
                is_sse_default: true,
                restart_hint: "Restart the servers in Cline (MCP Servers), or restart Cline",
                user: UserConfigFile {
                    override_variable: None,
                    base: BaseDirectory::Home,
                    path: ".cline/data/settings/cline_mcp_settings.json",
                },
                project: None,
            },
        }
    }
}

impl ClientProperties {
    /// The user-wide config file, for these environment variables.
    ///
    /// # Errors
    /// The name of the environment variable that is missing.
    pub(super) fn user_file(
        &self,
        system: OperatingSystem,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<PathBuf, &'static str> {
        let set = |name: &'static str| {
            variable(name).filter(|value| !value.is_empty()).map(PathBuf::from).ok_or(name)
        };
        if let Some((name, path)) = self.user.override_variable
            && let Ok(directory) = set(name)
        {
            return Ok(directory.join(path));
        }
        let home = || set(if system == OperatingSystem::Windows { "USERPROFILE" } else { "HOME" });
        let directory = match (&self.user.base, system) {
            (BaseDirectory::Home, _) => home()?,
            (BaseDirectory::Settings, OperatingSystem::Windows) => set("APPDATA")?,
            (BaseDirectory::Settings, OperatingSystem::MacOs) => home()?.join("Library/Application Support"),
            (BaseDirectory::Settings, OperatingSystem::Linux) => match set("XDG_CONFIG_HOME") {
                Ok(directory) if directory.is_absolute() => directory,
                _ => home()?.join(".config"),
            },
        };
        Ok(directory.join(self.user.path))
    }

    /// The config file of the project in this directory. Returns `None` if the client has no project files.
    pub(super) fn project_file(&self, directory: &Path) -> Option<PathBuf> {
        self.project.map(|path| directory.join(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(
        client: Client,
        system: OperatingSystem,
        variables: &[(&str, &str)],
    ) -> Result<PathBuf, &'static str> {
        client.properties().user_file(system, |wanted| {
            variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.into())
        })
    }

    #[test]
    fn file_locations_depend_on_the_operating_system() {
        const HOME: (&str, &str) = ("HOME", "/h");
        const PROFILE: (&str, &str) = ("USERPROFILE", "/u");
        const APPDATA: (&str, &str) = ("APPDATA", "/a");
        for (client, linux, mac, windows) in [
            (
                Client::ClaudeDesktop,
                "/h/.config/Claude/claude_desktop_config.json",
                "/h/Library/Application Support/Claude/claude_desktop_config.json",
                "/a/Claude/claude_desktop_config.json",
            ),
            (Client::ClaudeCode, "/h/.claude.json", "/h/.claude.json", "/u/.claude.json"),
            (Client::Cursor, "/h/.cursor/mcp.json", "/h/.cursor/mcp.json", "/u/.cursor/mcp.json"),
            (
                Client::VsCode,
                "/h/.config/Code/User/mcp.json",
                "/h/Library/Application Support/Code/User/mcp.json",
                "/a/Code/User/mcp.json",
            ),
            (
                Client::Gemini,
                "/h/.gemini/settings.json",
                "/h/.gemini/settings.json",
                "/u/.gemini/settings.json",
            ),
            (Client::Codex, "/h/.codex/config.toml", "/h/.codex/config.toml", "/u/.codex/config.toml"),
            (
                Client::Cline,
                "/h/.cline/data/settings/cline_mcp_settings.json",
                "/h/.cline/data/settings/cline_mcp_settings.json",
                "/u/.cline/data/settings/cline_mcp_settings.json",
            ),
        ] {
            assert_eq!(place(client, OperatingSystem::Linux, &[HOME]), Ok(linux.into()), "{client:?}");
            assert_eq!(place(client, OperatingSystem::MacOs, &[HOME]), Ok(mac.into()), "{client:?}");
            assert_eq!(
                place(client, OperatingSystem::Windows, &[PROFILE, APPDATA]),
                Ok(windows.into()),
                "{client:?}"
            );
        }
    }

    #[test]
    fn environment_variables_override_file_locations() {
        for (client, variable, file) in [
            (Client::VsCode, ("XDG_CONFIG_HOME", "/x"), "/x/Code/User/mcp.json"),
            (Client::VsCode, ("XDG_CONFIG_HOME", "relative"), "/h/.config/Code/User/mcp.json"),
            (Client::ClaudeCode, ("CLAUDE_CONFIG_DIR", "/c"), "/c/.claude.json"),
            (Client::Codex, ("CODEX_HOME", "/c"), "/c/config.toml"),
            (Client::Codex, ("CODEX_HOME", ""), "/h/.codex/config.toml"),
            (Client::Gemini, ("GEMINI_CLI_HOME", "/g"), "/g/.gemini/settings.json"),
        ] {
            assert_eq!(
                place(client, OperatingSystem::Linux, &[("HOME", "/h"), variable]),
                Ok(file.into()),
                "{client:?}"
            );
        }
        assert_eq!(place(Client::Cursor, OperatingSystem::Linux, &[]), Err("HOME"));
        assert_eq!(place(Client::VsCode, OperatingSystem::Windows, &[("USERPROFILE", "/u")]), Err("APPDATA"));
    }
}
