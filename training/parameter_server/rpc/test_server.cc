// A parameter server as a process of its own, which tests can kill. It reads the key as a line from
// standard input, writes its address to standard output, serves as a task, and writes "gone" when
// all workers have gone. Then it calls stop() if STOP_WHEN_GONE is set.
#include <cstdlib>
#include <iostream>
#include <string>

#include "muster/parameter_server/server.h"

int main() {
  using namespace muster::parameter_server;
  ServerOptions options;
  std::getline(std::cin, options.key);
  auto server = Server::start(options);
  if (!server) {
    std::cerr << server.error().to_string() << '\n';
    return 1;
  }
  std::cout << server->address() << std::endl;
  server->wait_as_task([&](const Ending&) {
    std::cout << "gone" << std::endl;
    if (std::getenv("STOP_WHEN_GONE") != nullptr) server->stop();
  });
  return 0;
}
