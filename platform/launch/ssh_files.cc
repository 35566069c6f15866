#include "launch/ssh_files.h"

#include <openssl/evp.h>

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/text.h"

namespace muster::launch {

namespace {

// OpenSSH's default (sntrup761x25519, since 9.0) also resists a quantum computer that decrypts
// recorded connections one day, and takes the client 65 ms of CPU time a connection. Traffic within
// a machine is not recorded on a network. This is the name of X25519 that every OpenSSH with
// ed25519 keys understands (6.5 and later).
constexpr const char* kKeyExchangeOnOneMachine = "curve25519-sha256@libssh.org";

}  // namespace

// The configuration contains addresses, so that names work without a resolver.
std::string client_config(const std::vector<ShellHost>& hosts, const std::string& folder,
                          bool on_one_machine) {
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
  if (on_one_machine) text += std::string("  KexAlgorithms ") + kKeyExchangeOnOneMachine + "\n";
  return text;
}

std::string known_hosts(const std::vector<ShellHost>& hosts, const std::string& host_public_line) {
  std::string text;
  for (const ShellHost& host : hosts) text += host.name + " " + host_public_line + "\n";
  return text;
}

// The path of a folder may contain blanks. sshd removes double quotes from all values but that of
// ForceCommand, which it passes to a shell unchanged.
//
// StrictModes checks every folder above the key file; the generated folder is private already, and
// in a sandbox its parents do not belong to the user. UsePAM would need root.
std::string sshd_config(const std::string& folder) {
  const std::string ssh = folder + "/ssh";
  return "HostKey \"" + ssh +
         "/host_ed25519\"\n"
         "AuthorizedKeysFile \"" +
         ssh +
         "/authorized_keys\"\n"
         "AuthenticationMethods publickey\nPubkeyAuthentication yes\nPasswordAuthentication no\n"
         "KbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nPermitEmptyPasswords "
         "no\n"
         "UsePAM no\nStrictModes no\nUseDNS no\nPidFile none\nPrintMotd no\nPrintLastLog no\n"
         "PermitUserRC no\nPermitTunnel no\nX11Forwarding no\nAllowAgentForwarding no\n"
         "MaxSessions 10\nLogLevel ERROR\n"
         // For scp and sftp; the session script runs it, as it runs every command. Each
         // distribution has its own folder for it.
         "Subsystem sftp PATH=$PATH:/usr/lib/openssh:/usr/libexec/openssh:/usr/lib/ssh "
         "sftp-server\n"
         // Without exec, a shell would remain and receive the signals meant for its program.
         "ForceCommand exec " +
         base::shell_quoted(folder + "/session") + "\n";
}

namespace {

using base::Error;
using base::ErrorCode;

constexpr std::string_view kType = "ssh-ed25519";

/// RFC 4251 strings: a length of four bytes, big-endian, then the bytes.
void append_number(std::string& blob, uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) blob += static_cast<char>(number >> shift & 0xff);
}

void append_string(std::string& blob, std::string_view text) {
  append_number(blob, static_cast<uint32_t>(text.size()));
  blob += text;
}

std::string_view as_text(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string public_blob(std::string_view public_key) {
  std::string blob;
  append_string(blob, kType);
  append_string(blob, public_key);
  return blob;
}

/// The part that a passphrase would encrypt. Two equal check numbers show a reader that decryption
/// succeeded; without a passphrase any equal pair is valid.
std::string private_part(std::string_view seed, std::string_view public_key) {
  std::string blob;
  append_number(blob, 0x6d757374);
  append_number(blob, 0x6d757374);
  append_string(blob, kType);
  append_string(blob, public_key);
  append_string(blob, std::string(seed) + std::string(public_key));
  append_string(blob, "muster");
  for (char pad = 1; blob.size() % 8 != 0; ++pad) blob += pad;
  return blob;
}

std::string private_file(std::string_view seed, std::string_view public_key) {
  std::string blob("openssh-key-v1\0", 15);
  append_string(blob, "none");
  append_string(blob, "none");
  append_string(blob, "");
  append_number(blob, 1);
  append_string(blob, public_blob(public_key));
  append_string(blob, private_part(seed, public_key));

  const std::string text = base::to_base64(blob);
  std::string file = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
  constexpr size_t kLine = 70;
  for (size_t at = 0; at < text.size(); at += kLine) file += text.substr(at, kLine) + "\n";
  return file + "-----END OPENSSH PRIVATE KEY-----\n";
}

}  // namespace

base::Result<SshKey> ssh_key_from_seed(const std::array<uint8_t, 32>& seed) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()),
      EVP_PKEY_free);
  std::array<uint8_t, 32> public_key{};
  size_t length = public_key.size();
  if (key == nullptr || EVP_PKEY_get_raw_public_key(key.get(), public_key.data(), &length) != 1) {
    return Error{.code = ErrorCode::kInternal, .what = "OpenSSL could not make an ed25519 key"};
  }
  return SshKey{
      .private_file = private_file(as_text(seed), as_text(public_key)),
      .public_line = std::string(kType) + " " + base::to_base64(public_blob(as_text(public_key)))};
}

std::string rsh_hosts(const std::vector<ShellHost>& hosts) {
  std::string text;
  for (const ShellHost& host : hosts) {
    text += host.name + " " + host.address + " " + std::to_string(host.port) + "\n";
  }
  return text;
}

std::vector<std::string> rsh_service(const std::string& remote_shell, const std::string& folder,
                                     const std::string& working_folder) {
  return {remote_shell, "--serve", folder + "/" + kRshFolder, working_folder};
}

}  // namespace muster::launch
