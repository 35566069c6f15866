// A private sshd for a test, without a port: PATH leads programs to an ssh that uses this sshd as
// its ProxyCommand, with keys that are created for the test. It logs in the current user.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/test_folder.h"

namespace muster::engine {

class TestSshd {
 public:
  TestSshd() {
    // An sshd of root requires this folder, which a machine that never ran one lacks.
    if (::geteuid() == 0) ::mkdir("/run/sshd", 0755);
    make_key("host");
    make_key("id");
    std::filesystem::copy_file(folder_ / "id.pub", folder_ / "authorized");
    write("sshd_config", "HostKey " + at("host") + "\nAuthorizedKeysFile " + at("authorized") +
                             "\nStrictModes no\nUsePAM no\nPidFile none\n");
    // exec, so that the stored process id is that of the sshd.
    script("proxy", "echo $$ > " + at("pid") + "\nexec /usr/sbin/sshd -i -f " + at("sshd_config") +
                        " -E " + at("log") + "\n");
    write("ssh_config", "Host *\n  IdentityFile " + at("id") +
                            "\n  IdentitiesOnly yes\n  UserKnownHostsFile " + at("known") +
                            "\n  StrictHostKeyChecking accept-new\n  ProxyCommand " + at("proxy") +
                            "\n");
    script("ssh", "exec /usr/bin/ssh -F " + at("ssh_config") + " \"$@\"\n");
    old_path_ = std::getenv("PATH");
    ::setenv("PATH", (folder_.path().string() + ":" + old_path_).c_str(), 1);
  }
  TestSshd(const TestSshd&) = delete;
  TestSshd& operator=(const TestSshd&) = delete;
  ~TestSshd() { ::setenv("PATH", old_path_.c_str(), 1); }

  const base::TestFolder& folder() const { return folder_; }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  /// Ends the latest connection.
  void cut() const {
    const auto pid = base::read_file(folder_ / "pid");
    ASSERT_TRUE(pid);
    ASSERT_EQ(::kill(std::stoi(*pid), SIGKILL), 0);
  }

  /// Refuses all further logins.
  void lock() const { write("authorized", ""); }

  /// Replaces the ssh for later connections.
  void script(const std::string& name, const std::string& text) const {
    write(name, "#!/bin/sh\n" + text);
    ::chmod(at(name).c_str(), 0700);
  }

 private:
  void write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(base::write_file(folder_ / name, text));
  }
  void make_key(const std::string& name) {
    base::SpawnOptions options{
        .argv = {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", at(name)}};
    options.environment = base::current_environment();
    const auto child = base::spawn(options);
    ASSERT_TRUE(child) << child.error().to_string();
    ASSERT_EQ(*base::wait_for(*child), 0);
  }

  base::TestFolder folder_;
  std::string old_path_;
};

}  // namespace muster::engine
