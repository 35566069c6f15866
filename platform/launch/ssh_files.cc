#include "launch/ssh_files.h"

namespace muster::launch {

// Addresses stand in the configuration itself, so the names work where no resolver knows them.
std::string client_config(const std::vector<ShellHost>& hosts, const std::string& folder) {
  std::string text;
  for (const ShellHost& host : hosts) {
    text += "Host " + host.name + "\n  HostName " + host.address + "\n  Port " +
            std::to_string(host.port) + "\n  User " + host.user + "\n  HostKeyAlias " + host.name +
            "\n";
  }
  const std::string ssh = folder + "/ssh";
  text += "Host *\n  IdentityFile \"" + ssh +
          "/id_ed25519\"\n  IdentitiesOnly yes\n  IdentityAgent none\n"
          "  UserKnownHostsFile \"" +
          ssh +
          "/known_hosts\"\n  GlobalKnownHostsFile none\n"
          "  StrictHostKeyChecking yes\n  UpdateHostKeys no\n  BatchMode yes\n"
          "  PasswordAuthentication no\n  ConnectionAttempts 3\n  LogLevel ERROR\n";
  return text;
}

std::string known_hosts(const std::vector<ShellHost>& hosts, const std::string& host_public_line) {
  std::string text;
  for (const ShellHost& host : hosts) text += host.name + " " + host_public_line + "\n";
  return text;
}

// StrictModes looks at every folder above the key file; the generated one is private already, and
// what lies above it in a sandbox is not the user's home. UsePAM would need root.
std::string sshd_config(const std::string& folder) {
  const std::string ssh = folder + "/ssh";
  return "HostKey " + ssh +
         "/host_ed25519\n"
         "AuthorizedKeysFile " +
         ssh +
         "/authorized_keys\n"
         "AuthenticationMethods publickey\nPubkeyAuthentication yes\nPasswordAuthentication no\n"
         "KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nPermitEmptyPasswords "
         "no\n"
         "UsePAM no\nStrictModes no\nUseDNS no\nPidFile none\nPrintMotd no\nPrintLastLog no\n"
         "PermitUserRC no\nPermitTunnel no\nX11Forwarding no\nAllowAgentForwarding no\n"
         "MaxSessions 10\nLogLevel ERROR\n"
         // For scp and sftp; run by the session script, as everything is. Each distribution has its
         // own place for it.
         "Subsystem sftp PATH=$PATH:/usr/lib/openssh:/usr/libexec/openssh:/usr/lib/ssh "
         "sftp-server\n"
         // A shell that stayed before it would take the signals that are meant for what it runs.
         "ForceCommand exec " +
         folder + "/session\n";
}

}  // namespace muster::launch
