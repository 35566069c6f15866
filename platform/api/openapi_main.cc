// muster-openapi, which the build runs to write the API's document:
//
//   muster-openapi platform/api/openapi_base.json > openapi.json
#include <iostream>

#include "api/openapi_writer.h"

int main(int argc, char** argv) {
  return muster::api::write_openapi(argc == 2 ? argv[1] : "", std::cout, std::cerr) ? 0 : 1;
}
