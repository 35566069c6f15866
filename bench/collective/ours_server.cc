// libmuster_parameter_server: one server, one worker, one tensor of each size. See streams.h.
//
// The optimizer is plain SGD, the cheapest one: the server checks each gradient, applies it, and
// returns the resulting tensor.
#include <vector>

#include "muster/parameter_server/client.h"
#include "muster/parameter_server/server.h"
#include "streams.h"

namespace {

using muster::parameter_server::Client;
using muster::parameter_server::Parameter;
using muster::parameter_server::Server;
using muster::parameter_server::Sgd;

void serve(const std::string& address, const std::string& key) {
  auto server = Server::start({.address = address, .key = key, .workers = 1});
  bench::need(server);
  server->wait();
}

std::string name_of(const std::string& size) {
  return "of " + size + " bytes";
}

std::size_t elements_of(const std::string& size) {
  return std::stoull(size) / sizeof(float);
}

// Each push subtracts 1 from every value.
void exchange(Client& client, const std::string& size, double seconds) {
  const std::string name = name_of(size);
  std::vector<float> values(elements_of(size));
  const std::vector<float> gradient(values.size(), 1);
  float pushes = 0;
  bench::measure_stream("push", values.size() * sizeof(float), seconds, [&] {
    bench::need(client.push({{name, gradient}}));
    pushes += 1;
  });
  bench::measure_stream("pull", values.size() * sizeof(float), seconds,
                        [&] { bench::need(client.pull({{name, values}})); });
  bench::verify(values, -pushes);
}

void work(const std::string& address, const std::string& key, const bench::Arguments& arguments) {
  auto client = Client::connect({.servers = {address}, .key = key});
  bench::need(client);
  const std::vector<std::string> sizes = arguments.list("sizes", "1048576");
  std::vector<std::vector<float>> zeros;
  std::vector<Parameter> parameters;
  zeros.reserve(sizes.size());
  for (const std::string& size : sizes) {
    const std::vector<float>& zero = zeros.emplace_back(elements_of(size));
    parameters.push_back({name_of(size), {static_cast<std::int64_t>(zero.size())}, zero});
  }
  bench::need(client->declare(parameters, Sgd{.learning_rate = 1}));
  for (const std::string& size : sizes) {
    exchange(*client, size, static_cast<double>(arguments.number("seconds", 1)));
  }
  bench::need(client->leave());
}

}  // namespace

int main(int argc, char** argv) {
  bench::run_side(argc, argv, serve, work);
}
