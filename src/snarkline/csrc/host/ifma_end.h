#if SNL_ISA_ifma
#pragma GCC diagnostic pop
#pragma GCC pop_options
#endif
