/* The types of CUDA's header that CUPTI's headers name. */
#ifndef CUDA_H
#define CUDA_H

#include <stddef.h>
#include <stdint.h>

#define CUDAAPI
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUevent_st *CUevent;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef int CUgraphNodeType;
typedef int CUresult;
typedef int CUdevice_attribute;
typedef int CUstreamAttrID;
typedef union {
	char pad[64];
} CUstreamAttrValue;
typedef struct {
	char bytes[16];
} CUuuid;
typedef struct CUaccessPolicyWindow_st CUaccessPolicyWindow;

#endif
